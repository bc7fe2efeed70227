"""Operations on payments: their states, repeats, proof and history."""
