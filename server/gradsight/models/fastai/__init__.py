"""fastai: the Learner's order of calls for a batch, and its callbacks."""
