"""Whether goals are met as often as a plan says."""
