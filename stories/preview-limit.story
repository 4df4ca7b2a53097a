# An operator may limit how many events by users a tenant has at once.
# promise: E5
host h1
set useroperations 2
scaleset web terminate 5m
instance of web on h1 times 4
poll web_0
restart web_0
delete web_1
refused restart web_2
refused delete web_2
# Started operations count, too; ended ones do not.
approve E1 by web_0
refused restart web_2
at 30s  restart web_2
set useroperations unlimited
restart web_3
# The platform's events do not count.
set useroperations 3
update host h1
# A delete does not count the operation that it replaces.
set useroperations unlimited
approve web by web_0
at 2m   scaleset few terminate 5m
instance of few on h1 times 2
poll few_0
set useroperations 1
restart few_0
refused delete few_1
delete few_0
expect few Scheduled
