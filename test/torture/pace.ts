/** Whether recoveries do all their work at once, so that nothing goes on while their time is moved on (`inline/hooks.ts`). */
export const pace = { isInline: false };
