import type { ServiceClient } from '../service/client.ts';
import { ServiceError } from '../service/errors.ts';

/** Tells a service that is gone from users whose answers cannot be had. */
export class Silence {
  readonly #service: ServiceClient;
  readonly #most: number;
  #inRow = 0;

  /** @param most users in a row without an answer, after whom the service is asked for something else */
  constructor(service: ServiceClient, most: number) {
    this.#service = service;
    this.#most = most;
  }

  /**
   * Told what came of each user: an error, or null where something came.
   * @throws ServiceError when the service answers nothing at all; the signal's reason when it aborts
   */
  async told(error: ServiceError | null, signal: AbortSignal): Promise<void> {
    this.#inRow = isSilent(error) ? this.#inRow + 1 : 0;
    if (this.#inRow >= this.#most) await this.ended(signal);
  }

  /** No more users: the last of them may have met a service that is gone. @throws as `told` */
  async ended(signal: AbortSignal): Promise<void> {
    if (this.#inRow === 0) return;
    this.#inRow = 0;
    try {
      await this.#service.users.list({ limit: 1 }, { signal });
    } catch (cause) {
      if (!(cause instanceof ServiceError) || isSilent(cause)) throw cause;
    }
  }
}

function isSilent(error: ServiceError | null): boolean {
  return error !== null && error.retryable && (error.status === null || error.status >= 500);
}
