"""Claims over HTTP, under `/api/v1/claims`."""
