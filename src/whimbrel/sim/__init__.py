"""Networks under a virtual clock: links with contacts, brokers that run pieces of queries, movers, plans in time."""
