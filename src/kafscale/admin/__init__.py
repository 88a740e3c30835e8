"""What is asked of a running cluster, and done to it: for commands, the console and assistants.

The law: answers are plain data, named as JSON names them, so that every face of Kafscale tells the
same things in the same words. Nothing here prints, and nothing here knows who asks.
"""
