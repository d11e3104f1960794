"""Networks under a virtual clock: links that come and go, brokers that run pieces of queries, movers."""
