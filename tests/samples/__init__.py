"""Files and pickles of released versions, and what they predict.

``python -m tests.samples.write`` writes those of this version into a folder of its name. It is run
once for each release; what was released is never written again.
"""
