

aConst*
value	B*abc