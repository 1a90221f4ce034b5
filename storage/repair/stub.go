package repair

// chain is what is known of the good batches of a log.
type chain struct{}

// epochPlan says how leader epochs are made to agree.
type epochPlan struct{}

// Action is one thing to do.
type Action struct{}
