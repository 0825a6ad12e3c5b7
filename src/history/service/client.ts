import { Bulk, Pulls } from './pulls.ts';
import { Labs } from './labs.ts';
import type { ServiceOptions } from './options.ts';
import { Transport } from './transport.ts';
import { Users } from './users.ts';
import { Webhooks } from './webhooks.ts';

/** Operations of the service, in groups. Inputs are checked before anything is sent. */
export class ServiceClient {
  readonly bulk: Bulk;
  readonly pulls: Pulls;
  readonly users: Users;
  readonly labs: Labs;
  readonly webhooks: Webhooks;
  readonly #transport: Transport;

  /** @throws ServiceInputError naming the option that is wrong */
  constructor(options: ServiceOptions) {
    const transport = new Transport(options);
    this.#transport = transport;
    this.bulk = new Bulk(transport);
    this.pulls = new Pulls(transport);
    this.users = new Users(transport);
    this.labs = new Labs(transport);
    this.webhooks = new Webhooks(transport);
  }

  /** Waits for calls in flight, then closes the connections. */
  close(): Promise<void> {
    return this.#transport.close();
  }
}
