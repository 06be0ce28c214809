
"serve*2.21.0¨

xPlaceholder*
dtype0
B
wVarHandleOp*
dtype0*
shape:*
shared_namew
#
rReadVariableOpw*
dtype0

yAddV2xr*
T0"Ð

f:0y8*v
serving_defaultc

s"
x:0x:0x:0

x
x:0ÿÿÿÿÿÿÿÿÿ
y
y:0tensorflow/serving/predict2

a:0	words.txt