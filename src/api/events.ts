/** Types of an event: its envelope, its bytes, and its place in the journal. */
export type { Envelope, Event, Handling, JournalEvent } from '../core/event.ts';
export type { TraceContext } from '../core/trace.ts';
