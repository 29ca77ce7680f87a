"""Do the tests notice? Small faults are put into the core one by one, and the tests are run."""
