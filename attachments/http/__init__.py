"""The one HTTP API of the owner `attachments`, under `/api/v1/`. It has no tables."""
