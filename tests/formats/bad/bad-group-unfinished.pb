
	
aNoOpK