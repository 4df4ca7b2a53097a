# An update over three update domains of twenty hosts each: one domain after the other, and every machine once.
# promise: R1
host a01 a02 a03 a04 a05 a06 a07 a08 a09 a10 a11 a12 a13 a14 a15 a16 a17 a18 a19 a20
host b01 b02 b03 b04 b05 b06 b07 b08 b09 b10 b11 b12 b13 b14 b15 b16 b17 b18 b19 b20
host c01 c02 c03 c04 c05 c06 c07 c08 c09 c10 c11 c12 c13 c14 c15 c16 c17 c18 c19 c20
scaleset web
instance of web on a01 ud 0 fd 1
instance of web on a02 ud 0 fd 2
instance of web on a03 ud 0 fd 0
instance of web on a04 ud 0 fd 1
instance of web on a05 ud 0 fd 2
instance of web on a06 ud 0 fd 0
instance of web on a07 ud 0 fd 1
instance of web on a08 ud 0 fd 2
instance of web on a09 ud 0 fd 0
instance of web on a10 ud 0 fd 1
instance of web on a11 ud 0 fd 2
instance of web on a12 ud 0 fd 0
instance of web on a13 ud 0 fd 1
instance of web on a14 ud 0 fd 2
instance of web on a15 ud 0 fd 0
instance of web on a16 ud 0 fd 1
instance of web on a17 ud 0 fd 2
instance of web on a18 ud 0 fd 0
instance of web on a19 ud 0 fd 1
instance of web on a20 ud 0 fd 2
instance of web on b01 ud 1 fd 1
instance of web on b02 ud 1 fd 2
instance of web on b03 ud 1 fd 0
instance of web on b04 ud 1 fd 1
instance of web on b05 ud 1 fd 2
instance of web on b06 ud 1 fd 0
instance of web on b07 ud 1 fd 1
instance of web on b08 ud 1 fd 2
instance of web on b09 ud 1 fd 0
instance of web on b10 ud 1 fd 1
instance of web on b11 ud 1 fd 2
instance of web on b12 ud 1 fd 0
instance of web on b13 ud 1 fd 1
instance of web on b14 ud 1 fd 2
instance of web on b15 ud 1 fd 0
instance of web on b16 ud 1 fd 1
instance of web on b17 ud 1 fd 2
instance of web on b18 ud 1 fd 0
instance of web on b19 ud 1 fd 1
instance of web on b20 ud 1 fd 2
instance of web on c01 ud 2 fd 1
instance of web on c02 ud 2 fd 2
instance of web on c03 ud 2 fd 0
instance of web on c04 ud 2 fd 1
instance of web on c05 ud 2 fd 2
instance of web on c06 ud 2 fd 0
instance of web on c07 ud 2 fd 1
instance of web on c08 ud 2 fd 2
instance of web on c09 ud 2 fd 0
instance of web on c10 ud 2 fd 1
instance of web on c11 ud 2 fd 2
instance of web on c12 ud 2 fd 0
instance of web on c13 ud 2 fd 1
instance of web on c14 ud 2 fd 2
instance of web on c15 ud 2 fd 0
instance of web on c16 ud 2 fd 1
instance of web on c17 ud 2 fd 2
instance of web on c18 ud 2 fd 0
instance of web on c19 ud 2 fd 1
instance of web on c20 ud 2 fd 2
poll all
rollout update all
expect web Scheduled
# The first domain approves at once, the second after ten minutes, the third not at all.
at 1m   approve web by web_0
expect web Started
at 1m9s expect web Scheduled, rollout going
at 11m9s approve web by web_20
expect web Started
at 11m18s expect web Scheduled
at 26m17s expect web Scheduled
at 26m18s expect web Started
at 26m27s expect web nothing, rollout finished
# Each machine was in exactly one event.
expect web incarnation 10
