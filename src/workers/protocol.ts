import type { ErrorCode } from '../core/errors.ts';
import type { AppendResult } from '../core/ingest.ts';
import type { Packed } from '../journal/rows.ts';
import type { Admission } from '../receive/stages.ts';
import type { DeliveryInfo, ReceiverLoad } from '../receive/options.ts';
import type { Outcome } from '../receive/outcome.ts';

/**
 * What crosses between the first process and one of its workers, by structured clone. A worker speaks first, with
 * `ready`: what is said to it before it listens to messages would be lost.
 *
 * @typeParam Settings what a worker needs of the config; plain data
 */
export type Order<Settings> =
  | {
      readonly op: 'start';
      readonly settings: Settings;
      /** Instead of that of the settings. */
      readonly port: number;
      readonly admission: Admission;
    }
  /** Exchanges the settings; answered by `settled`. */
  | { readonly op: 'settings'; readonly settings: Settings }
  | { readonly op: 'results'; readonly results: readonly ResultRow[] }
  | { readonly op: 'admission'; readonly admission: Admission }
  /** Stop accepting; answered by `drained` when nothing is in flight. */
  | { readonly op: 'drain' }
  /** Cut what is still connected, and end. */
  | { readonly op: 'close' };

export type Report =
  | { readonly op: 'ready' }
  | { readonly op: 'listening'; readonly url: string; readonly port: number }
  | { readonly op: 'failed'; readonly code: ErrorCode; readonly detail: string }
  | WorkReport
  | { readonly op: 'settled' }
  | { readonly op: 'drained' }
  /** For the log. */
  | { readonly op: 'warning'; readonly detail: object; readonly message: string }
  /** What nobody expected, for the log. */
  | { readonly op: 'error'; readonly message: string; readonly stack: string | undefined };

/** Events that are waited for, and what became of deliveries since the last report. */
export interface WorkReport extends Packed {
  readonly op: 'work';
  /** Ticket of the first event; the others have those that follow. */
  readonly first: number;
  /** Reasons as JSON for an event that goes to quarantine; null for one that is fit. */
  readonly invalid: readonly (string | null)[];
  readonly answered: readonly (readonly [Outcome, DeliveryInfo])[];
  readonly load: ReceiverLoad;
}

/** What became of the event with this ticket: it is durable, or it is not and why. */
export type ResultRow =
  | readonly [ticket: number, result: AppendResult]
  | readonly [ticket: number, result: null, code: ErrorCode, detail: string];

/** The first argument of a process that is a worker; `main.ts` knows it by that. */
export const WORKER = 'receive-for-parent';
export type WorkerArgument = typeof WORKER;
