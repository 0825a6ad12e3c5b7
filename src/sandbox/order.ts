import type { LabAccount, LabTest } from './made-up-labs.ts';
import type { User } from './users.ts';

export const INTERPRETATIONS = ['normal', 'abnormal', 'critical'] as const;

export interface Order {
  readonly id: string;
  readonly number: number;
  readonly user: User;
  readonly test: LabTest;
  readonly account: LabAccount;
  readonly notes: string | null;
  /** How it came to be here. */
  readonly way: 'created' | 'imported';
  readonly origin: 'initial' | 'recreation';
  readonly createdAt: string;
  status: string;
  interpretation: (typeof INTERPRETATIONS)[number] | null;
  /** The statuses it has had, the oldest first. */
  events: readonly { readonly status: string; readonly at: string }[];
  /** The idempotency key it came with, and what was asked. */
  readonly key: string | null;
  readonly asked: string;
  /** Its place in the course, and since when, in sandbox time. */
  step: number;
  since: number;
}
