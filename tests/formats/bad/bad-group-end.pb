
	
aNoOp4