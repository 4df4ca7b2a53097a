# A machine that is being moved is not moved a second time until it has come.
# promise: E3
host h1 h2 h3
vm a on h1
poll a
degrade host h1
redeploy a
# Both are approved at once: the first one moves it, the second then finds it gone or goes on.
approve a by a
expect a Started Scheduled
at 2m   expect a on h2, a disk 2, a Started
at 4m   expect a on h3, a nothing
# An eviction under way is not disturbed.
vm cheap on h2 spot deallocate
poll cheap
evict cheap
approve cheap by cheap
refused deallocate cheap
