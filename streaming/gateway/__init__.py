"""The ingest gateway: it turns the bytes of feeds into blocks in the ingest logs of the spaces."""
