# When the tenant that was waited for has left the host, those that are ready do not wait on.
# promise: E3
host h1 h2
vm east on h1
availabilityset west
machine west-0 of west on h1 ud 0
machine west-1 of west on h2 ud 1
poll all
update host h1
at 1m   approve east by east
expect  east Scheduled
at 2m   deallocate west-0
expect  west nothing, east Started
