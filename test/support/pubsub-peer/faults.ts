import type { status } from '@grpc/grpc-js';
import { FaultList } from '../fault-list.ts';
import type { PeerMessage } from './topics.ts';

/**
 * What can go wrong with a publish request.
 * - `status`: answered with a gRPC status; nothing is stored. `retryAfter` (ms) goes along as the service's RetryInfo
 * - `drop`: every connection is cut before the answer; the messages are stored unless `stored` is false
 * - `hang`: no answer, ever; stored only if `stored` says so
 */
type PublishFault =
  | {
      readonly kind: 'status';
      readonly code: status;
      readonly details?: string;
      readonly retryAfter?: number;
    }
  | { readonly kind: 'drop'; readonly stored?: boolean }
  | { readonly kind: 'hang'; readonly stored?: boolean };

export type Fault = PublishFault & {
  /** Only this topic, by its short name; all when left out. */
  readonly topic?: string;
  /** How often it strikes; until it is lifted when left out. */
  readonly times?: number;
  /** Only requests with such a message: a poisoned event. */
  readonly holding?: (message: PeerMessage) => boolean;
};

export class Faults extends FaultList<Fault> {
  onPublish(name: string, messages: readonly PeerMessage[]): PublishFault | null {
    return this.strike(
      ({ topic = name, holding }) => topic === name && (holding === undefined || messages.some(holding)),
    );
  }
}
