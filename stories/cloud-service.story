# A cloud service is one tenant; its role instances are named as they are.
# promise: T1
host h1 h2
service shop
machine FrontEnd_IN_0 of shop on h1 ud 0
machine BackEnd_IN_0 of shop on h1 ud 0
machine FrontEnd_IN_1 of shop on h2 ud 1
poll BackEnd_IN_0
update host h1
expect shop Scheduled
approve shop by FrontEnd_IN_1
expect shop Started
