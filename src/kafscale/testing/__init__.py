"""What tests of Kafscale, and of programs that use it, are made with; nothing else imports it."""
