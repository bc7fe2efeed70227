// What a shop writes with payhere-js-sdk, by its README: one function for each of its three kinds of payment.
({ kind, form }) => {
  const { AccountCategory, CheckoutParams, Customer, Month, Payhere } = window.sdk;
  const { PayhereCheckout, PayherePreapproval, PayhereSubscription, PreapprovalParams, SubscriptionParams, Year } = window.sdk;
  const common = {
    returnUrl: form.return_url,
    cancelUrl: form.cancel_url,
    notifyUrl: form.notify_url,
    order_id: form.order_id,
    itemTitle: form.items,
    currency: form.currency,
    hash: form.hash,
  };
  const paid = { ...common, amount: form.amount };
  const fail = (message) => document.body.append(`${message}`);
  Payhere.init(form.merchant_id, AccountCategory.SANDBOX);
  const customer = new Customer(form);
  const begun = {
    payment: () => new PayhereCheckout(customer, new CheckoutParams(paid), fail),
    subscription: () =>
      new PayhereSubscription(
        customer,
        new SubscriptionParams({ ...paid, recurrence: new Month(1), duration: new Year(1) }),
        fail,
      ),
    preapproval: () => new PayherePreapproval(customer, new PreapprovalParams(common), fail),
  };
  begun[kind]().start();
};
