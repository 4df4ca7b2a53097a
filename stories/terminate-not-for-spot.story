# Terminate notification is not available for spot machines.
# promise: T4
host h1
refused scaleset batch spot delete terminate 5m
scaleset batch spot delete
instance of batch on h1
refused model batch terminate 5m
refused vm cheap on h1 spot deallocate terminate 5m
vm cheap on h1 spot deallocate
refused profile cheap terminate 5m
poll all
# So a delete goes without a word.
delete batch_0
expect batch nothing, batch_0 gone
