"""The event tables: days made ahead and for late data, guards that nobody switches off, retention by whole days."""
