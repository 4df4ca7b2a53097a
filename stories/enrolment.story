# The first request of any machine enables Scheduled Events for its tenant; a day of silence disables them.
# promise: T2
host h1
scaleset web
instance of web on h1 times 2
expect web unenrolled
# The tenant is not enrolled: it runs at once, without an event.
restart web_0
expect web nothing, web_0 boots 2
at 1h   poll web_1
expect web enrolled
restart web_0
expect web Scheduled
approve web by web_0
# Every request counts.
at 20h  poll web_0
at 43h  expect web enrolled
# An event that is announced runs on, and keeps its tenant enrolled.
at 43h59m restart web_0
at 44h1m expect web enrolled, web Scheduled
at 44h14m expect web Started
at 44h15m expect web unenrolled, web nothing
at 45h  restart web_0
expect web_0 boots 5
