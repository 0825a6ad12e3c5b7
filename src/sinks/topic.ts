import type { SendResult } from '../core/sink.ts';

export const NO_TOPIC: SendResult = {
  status: 'retry',
  reason: 'the route names no topic, and the sink has no default one (topic)',
  sink: true,
};

/** A slip in the config, and none of the event's: it waits until the route is corrected. */
export function badTopic(name: string): SendResult {
  return { status: 'retry', reason: `${JSON.stringify(name)} is not a valid topic name`, sink: true };
}
