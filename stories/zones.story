# A placement group over three zones is one tenant; a machine never leaves its zone.
# promise: E1, T1
host a1 a2 zone 1
host b1 b2 zone 2
host c1 zone 3
scaleset web
instance of web on a1 ud 0
instance of web on b1 ud 1
instance of web on c1 ud 2
poll web_0
redeploy web_1
expect web Scheduled
approve web by web_2
at 2m   expect web_1 on b2
# There is no other host in zone 3.
refused redeploy web_2
update host a1 b2 c1
expect web Scheduled
