"""Topics: brought to what their resources ask for, without fighting over what others change."""
