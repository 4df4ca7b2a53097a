# A new operating-system image is announced as a Reboot where the profile says so.
# promise: E2
host h1
scaleset web osimage
instance of web on h1
vm solo on h1
poll all
reimage web_0
expect web Scheduled
reimage solo
expect solo nothing, solo boots 2
at 15m  expect web Started
at 15m30s expect web_0 boots 2
