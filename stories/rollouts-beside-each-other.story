# Two hosts are in planned work together only where no tenant has different update domains on them.
# promise: E3
host h1 h2 h3
scaleset web
instance of web on h1 ud 0
instance of web on h2 ud 1
vm solo on h3
poll all
update host h1
# h3 has no tenant of h1.
update host h3
expect web Scheduled, solo Scheduled
# h2 has to wait.
reboot host h2
# A host that has planned work already gets no more.
refused update host h1
refused migrate host h2
expect web Scheduled
at 5m   approve web by web_0
at 6m   expect web Scheduled
at 20m9s expect web Started
