
	
aN