# Hosts, tenants and scale sets are admitted and removed by commands like everything else.
# promise: T1
host h1
refused host h1
vm solo on h1
refused vm solo on h1
refused scaleset solo
scaleset web
refused availabilityset web
instance of web on h1
refused remove host h1
refused remove scaleset web
refused machine extra of web on h1
refused machine extra of solo on h1
refused remove tenant solo
refused remove tenant web
availabilityset db
remove tenant db
delete web_0
remove scaleset web
delete solo
remove host h1
host h1
