"""The same queries on Spark: batch and streaming DataFrames in, DataFrames of detections out."""
