"""Long work: the test of a policy in pieces, executors that share it, the debugging loop."""
