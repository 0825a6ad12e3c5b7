/** Types of an event: its envelope, its bytes, and its place in the journal. */
export type { Envelope, Event, Handling, JournalEvent, TraceContext } from '../core/event.ts';
