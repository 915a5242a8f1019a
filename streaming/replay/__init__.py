"""The replay: pages of stored elements, and of the answers that queries told or would have told about them.

Pages of elements are read where they are asked for. Answers come from the servers of the engine, in a child process:
`sessions` is the side of who asks.
"""
