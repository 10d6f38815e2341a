#ifndef SURUS_TASK_INTERRUPT_H
#define SURUS_TASK_INTERRUPT_H

#include "base.h"

extern volatile uint32_t surus_ticks;
extern uint32_t surus_ticks_per_slice;
void surus_interrupts_start(void);
void surus_interrupts_enter_worker(uint64_t slice_us);

#endif
