"""Samples that lie in objects of stores and in tar shards: URLs, credentials, ranges, indexes."""
