"""The `kafscale` command: it reads flags and the environment, joins the rooms and prints."""
