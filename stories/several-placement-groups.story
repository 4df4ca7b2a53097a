# A scale set of more than 100 instances has several placement groups, each with a document of its own.
# promise: T1
host h1 h2
scaleset web terminate 5m
instance of web on h1 times 100
instance of web on h2 times 1
poll web_0
expect web enrolled, web:2 unenrolled
delete web_99
expect web Scheduled
# No tenant of the second group is enrolled.
delete web_100
expect web:2 nothing, web_100 gone
# A flexible scale set is one tenant.
host h3
scaleset flex flexible
instance of flex on h3 times 150
poll flex_149
restart flex_0
expect flex Scheduled
