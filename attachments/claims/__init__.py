"""Claims with items and attachments: who may see and change them, and what becomes of their files."""
