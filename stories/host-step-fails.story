# A step that fails: the machines return, the events end, and the host needs attention.
# promise: R2
host h1 h2
vm solo on h1
poll solo
update host h1
approve solo by solo
at 3s   done host h1 failed does not boot
expect solo nothing, solo on h1, solo running, solo boots 1
# The host gets no work and no machine until an operator has looked at it.
refused update host h1
refused vm new on h1
# Its machines are not affected: the attention is no event.
at 1h   expect solo nothing
restart solo
approve solo by solo
at 2h   expect solo boots 2
clear host h1
update host h1
expect solo Scheduled
# A step is given up if nobody knows how it ended: it counts as failed.
approve solo by solo
giveup host h1
expect solo nothing, solo running
refused update host h1
clear host h1
# It is requested again while it is in progress, and has one end.
update host h1
approve solo by solo
at 2h4s retry host h1
expect solo Started
at 3h   expect solo nothing, solo boots 2
update host h1
expect solo Scheduled
