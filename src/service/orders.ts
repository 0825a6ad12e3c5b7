import type { ReadOptions } from './options.ts';
import { pagingQuery, type Paging } from './labs.ts';
import { Group, type Open, type Unknown } from './shape.ts';

/** Of an order only the interpretation is documented for sure. */
export interface Order extends Unknown {
  readonly interpretation?: Open<'normal' | 'abnormal' | 'critical'> | null;
}

export interface OrderPage extends Unknown {
  readonly orders: readonly Order[];
}

export class Orders extends Group {
  async list(
    { interpretation, ...paging }: Paging & { readonly interpretation?: Order['interpretation'] } = {},
    options: ReadOptions = {},
  ): Promise<OrderPage> {
    const query = { ...pagingQuery(paging), interpretation };
    return this.readList<OrderPage>({ method: 'GET', path: 'orders', query, ...options }, 'orders');
  }
}
