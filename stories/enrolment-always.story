# A setting enrols every tenant as soon as it exists: no machine has to poll first, and silence ends nothing.
# promise: T2
host h1 h2
vm first on h1
expect first unenrolled
enrolment always
expect first enrolled
vm second on h2
expect second enrolled
restart second
expect second Scheduled
at 15m  expect second Started
# A day without a request changes nothing.
at 30h  expect first enrolled, second enrolled
# Back to the usual rule: tenants stay enrolled, and their silence begins now. New ones are not enrolled.
enrolment on-first-poll
vm third on h1
expect first enrolled, third unenrolled
at 40h  poll second
at 53h59m expect first enrolled
at 54h  expect first unenrolled, second enrolled
at 64h  expect second unenrolled
