# At one moment a machine takes its tenant along, and the deletes of three others start.
# promise: T4
host h1
vm first on h1 terminate 5m
vm a on h1 terminate 5m
vm b on h1 terminate 5m
vm c on h1 terminate 5m
poll all

at 0s   delete first
at 5s   delete a
delete b
delete c
at 5m   expect first Started, a Scheduled
at 5m5s expect first gone, a Started, b Started, c Started
at 6m   expect a gone, b gone, c gone
