# The brake is released: held events start, and the consequences are decided before any machine is affected.
# promise: N2
host h1 h2 h3 h4
scaleset web
instance of web on h2 ud 1 times 2
availabilityset db
machine db-1 of db on h3 ud 1
service shop
machine Role_IN_0 of shop on h3

# No tenant is enrolled, and everything waits for its notice; then for the brake.
set unenrolled waits
reboot host h3 h1
redeploy web_1
brake on
at 20m  expect web_1 on h2, db-1 boots 1
brake off
# The host that is being restarted takes no machine.
expect web_1 on h4, db-1 boots 2
