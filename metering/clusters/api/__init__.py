"""The token API of platform administrators, under `/api/v1/admin/clusters/`."""
