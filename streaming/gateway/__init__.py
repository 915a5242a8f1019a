"""The ingest gateway: from the bytes of feeds to blocks in the ingest log of one space."""
